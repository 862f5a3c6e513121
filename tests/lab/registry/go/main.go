// Reads an Avro topic with franz-go and one of two registry clients: franz-go's sr with its Serde, or hamba/avro's registry.
// registry-go franz|hamba KAFKA REGISTRY TOPIC,.. COUNT; the protocol is that of ../README.md.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/hamba/avro/v2/registry"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sr"
)

type login struct{ User, Password, Ca string }

type line struct {
	Topic     string      `json:"topic"`
	Partition int32       `json:"partition"`
	Offset    int64       `json:"offset"`
	KeyID     *int        `json:"key_id"`
	Key       any         `json:"key"`
	ID        *int        `json:"id"`
	Value     any         `json:"value"`
	Headers   [][2]string `json:"headers"`
}

// client is what both libraries can do.
type client interface {
	subjects(context.Context) ([]string, error)
	latest(ctx context.Context, subject string) (int, error)
	decode(ctx context.Context, b []byte) (avro.Schema, any, error)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse(text string) (avro.Schema, error) {
	return avro.ParseBytesWithCache([]byte(text), "", &avro.SchemaCache{})
}

type franz struct {
	cl      *sr.Client
	serde   sr.Serde
	schemas map[int]avro.Schema
}

func (f *franz) subjects(ctx context.Context) ([]string, error) { return f.cl.Subjects(ctx) }

func (f *franz) latest(ctx context.Context, subject string) (int, error) {
	s, err := f.cl.SchemaByVersion(ctx, subject, -1)
	return s.ID, err
}

func (f *franz) decode(ctx context.Context, b []byte) (avro.Schema, any, error) {
	var v any
	err := f.serde.Decode(b, &v)
	if errors.Is(err, sr.ErrNotRegistered) {
		if err = f.register(ctx, b); err != nil {
			return nil, nil, err
		}
		err = f.serde.Decode(b, &v)
	}
	id, _, _ := f.serde.DecodeID(b)
	return f.schemas[id], v, err
}

func (f *franz) register(ctx context.Context, b []byte) error {
	id, _, err := f.serde.DecodeID(b)
	if err != nil {
		return err
	}
	got, err := f.cl.SchemaByID(ctx, id)
	if err != nil {
		return err
	}
	s, err := parse(got.Schema)
	if err != nil {
		return err
	}
	f.schemas[id] = s
	f.serde.Register(id, nil, sr.DecodeFn(func(b []byte, v any) error { return avro.Unmarshal(s, b, v) }))
	return nil
}

type hamba struct {
	cl  *registry.Client
	dec *registry.Decoder
}

func (h *hamba) subjects(ctx context.Context) ([]string, error) { return h.cl.GetSubjects(ctx) }

func (h *hamba) latest(ctx context.Context, subject string) (int, error) {
	s, err := h.cl.GetLatestSchemaInfo(ctx, url.PathEscape(subject)) // it puts the subject into the path as it is
	return s.ID, err
}

func (h *hamba) decode(ctx context.Context, b []byte) (avro.Schema, any, error) {
	var v any
	if err := h.dec.Decode(ctx, b, &v); err != nil {
		return nil, nil, err
	}
	s, err := h.cl.GetSchema(ctx, int(binary.BigEndian.Uint32(b[1:])))
	return s, v, err
}

// pure spells a decoded value as ../README.md says.
func pure(s avro.Schema, v any) any {
	if r, ok := s.(*avro.RefSchema); ok {
		s = r.Schema()
	}
	switch t := s.(type) {
	case *avro.UnionSchema:
		if v == nil {
			return nil
		}
		for _, b := range t.Types() {
			if b.Type() == avro.Null {
				continue
			}
			if m, ok := v.(map[string]any); ok && len(m) == 1 { // {"name of the branch": value}
				if x, ok := m[branch(b)]; ok {
					v = x
				}
			}
			return pure(b, v)
		}
		return nil
	case *avro.RecordSchema:
		out := map[string]any{}
		for _, f := range t.Fields() {
			out[f.Name()] = pure(f.Type(), v.(map[string]any)[f.Name()])
		}
		return out
	case *avro.MapSchema:
		out := map[string]any{}
		for k, x := range v.(map[string]any) {
			out[k] = pure(t.Values(), x)
		}
		return out
	case *avro.ArraySchema:
		out := []any{}
		for _, x := range v.([]any) {
			out = append(out, pure(t.Items(), x))
		}
		return out
	}
	switch x := v.(type) {
	case float64:
		return fmt.Sprintf("d:%016x", math.Float64bits(x))
	case string:
		return "s:" + x
	case time.Time:
		if s.Type() == avro.Int {
			return x.Unix() / 86400
		}
		return x.UnixMicro()
	case avro.LogicalDuration:
		b := binary.LittleEndian.AppendUint32(nil, x.Months)
		b = binary.LittleEndian.AppendUint32(b, x.Days)
		return "b:" + hex.EncodeToString(binary.LittleEndian.AppendUint32(b, x.Milliseconds))
	}
	return v
}

// branch is the name by which hamba calls a branch of a union.
func branch(s avro.Schema) string {
	if n, ok := s.(avro.NamedSchema); ok {
		return n.FullName()
	}
	if r, ok := s.(*avro.RefSchema); ok {
		return r.Schema().FullName()
	}
	name := string(s.Type())
	if l, ok := s.(avro.LogicalTypeSchema); ok && l.Logical() != nil {
		name += "." + string(l.Logical().Type())
	}
	return name
}

func main() {
	var w login
	check(json.Unmarshal([]byte(os.Getenv("LAB_LOGIN")), &w))
	lib, kafka, address, topics := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	count, err := strconv.Atoi(os.Args[5])
	check(err)
	var conf *tls.Config
	if w.Ca != "" {
		pem, err := os.ReadFile(w.Ca)
		check(err)
		conf = &tls.Config{RootCAs: x509.NewCertPool()}
		conf.RootCAs.AppendCertsFromPEM(pem)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	var c client
	if lib == "franz" {
		opts := []sr.ClientOpt{sr.URLs(address), sr.BasicAuth(w.User, w.Password)}
		if conf != nil {
			opts = append(opts, sr.DialTLSConfig(conf))
		}
		cl, err := sr.NewClient(opts...)
		check(err)
		c = &franz{cl: cl, schemas: map[int]avro.Schema{}}
	} else {
		h := &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
		cl, err := registry.NewClient(address, registry.WithBasicAuth(w.User, w.Password), registry.WithHTTPClient(h))
		check(err)
		c = &hamba{cl, registry.NewDecoder(cl)}
	}
	out := bufio.NewWriter(os.Stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	say := func(v any) {
		check(enc.Encode(v))
		check(out.Flush())
	}
	one := func(b []byte) (*int, any) {
		if b == nil {
			return nil, nil
		}
		s, v, err := c.decode(ctx, b)
		check(err)
		id := int(binary.BigEndian.Uint32(b[1:]))
		return &id, pure(s, v)
	}
	if kafka == "-" {
		in := bufio.NewScanner(os.Stdin)
		in.Buffer(nil, 1<<24)
		for in.Scan() {
			b, err := hex.DecodeString(in.Text())
			check(err)
			var l line
			l.ID, l.Value = one(b)
			say(l)
		}
		return
	}
	subjects, err := c.subjects(ctx)
	check(err)
	latest, err := c.latest(ctx, strings.Split(topics, ",")[0]+"-value")
	check(err)
	say(map[string]any{"subjects": subjects, "latest": latest})
	opts := []kgo.Opt{kgo.SeedBrokers(kafka), kgo.ConsumeTopics(strings.Split(topics, ",")...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SASL(plain.Auth{User: w.User, Pass: w.Password}.AsMechanism())}
	if conf != nil {
		opts = append(opts, kgo.DialTLSConfig(conf))
	}
	k, err := kgo.NewClient(opts...)
	check(err)
	defer k.Close()
	for count > 0 {
		fs := k.PollFetches(ctx)
		check(fs.Err())
		fs.EachRecord(func(r *kgo.Record) {
			l := line{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Headers: [][2]string{}}
			l.KeyID, l.Key = one(r.Key)
			l.ID, l.Value = one(r.Value)
			for _, h := range r.Headers {
				l.Headers = append(l.Headers, [2]string{h.Key, string(h.Value)})
			}
			say(l)
			count--
		})
	}
}
