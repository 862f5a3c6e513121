// franz-go lab client. Modes: group (consumer group, commit), direct (all partitions from the start),
// next (KIP-848 group), bench (direct, counts bytes, no per-record work), admin (kadm calls),
// admin-direct (those that need no group).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"lab/labdump"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	b := flag.String("b", "127.0.0.1:9092", "bootstrap")
	t := flag.String("t", "hello", "topic")
	mode := flag.String("m", "group", "group|direct|next|bench|admin|admin-direct")
	g := flag.String("g", "lab-franz", "group")
	n := flag.Int64("n", 0, "stop after this many records (0: until 3 s of silence)")
	id := flag.String("id", "lab-franz", "client id")
	debug := flag.Bool("v", false, "debug log")
	maxPart := flag.Int("maxpart", 0, "FetchMaxPartitionBytes")
	maxBytes := flag.Int("maxbytes", 0, "FetchMaxBytes")
	committed := flag.Bool("rc", false, "read_committed")
	session := flag.Duration("session", 0, "session timeout (0: the library's); heartbeats and commits come six times as often")
	ranged := flag.Bool("range", false, "the range balancer, which all clients share (default: cooperative-sticky)")
	disableSess := flag.Bool("nosession", false, "disable fetch sessions")
	flag.Parse()
	opts := append(login(), kgo.SeedBrokers(strings.Split(*b, ",")...), kgo.ClientID(*id))
	if *debug {
		opts = append(opts, kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelDebug, nil)))
	}
	if *ranged {
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	}
	if *session > 0 {
		opts = append(opts, kgo.SessionTimeout(*session), kgo.HeartbeatInterval(*session/6), kgo.AutoCommitInterval(*session/6))
	}
	if *maxPart > 0 {
		opts = append(opts, kgo.FetchMaxPartitionBytes(int32(*maxPart)))
	}
	if *maxBytes > 0 {
		opts = append(opts, kgo.FetchMaxBytes(int32(*maxBytes)))
	}
	if *committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if *disableSess {
		opts = append(opts, kgo.DisableFetchSessions())
	}
	ctx := context.Background()
	switch *mode {
	case "group":
		opts = append(opts, kgo.ConsumerGroup(*g), kgo.ConsumeTopics(*t), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	case "next":
		ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
		opts = append(opts, kgo.WithContext(ctx), kgo.ConsumerGroup(*g), kgo.ConsumeTopics(*t), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	case "direct", "bench":
		opts = append(opts, kgo.ConsumeTopics(*t), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer cl.Close()
	if strings.HasPrefix(*mode, "admin") {
		admin(cl, *t, *mode == "admin-direct")
		return
	}
	var recs, bytes int64
	start := time.Now()
	last := start
	for {
		c, cancel := context.WithTimeout(ctx, labdump.Idle())
		fs := cl.PollFetches(c)
		silent := c.Err() != nil // asked before cancel: a poll that brings an error alone is not silence
		cancel()
		if fs.NumRecords() == 0 && recs > 0 && silent {
			break
		}
		if recs == 0 && time.Since(start) > 30*time.Second {
			fmt.Println("timeout")
			os.Exit(1)
		}
		fs.EachError(func(t string, p int32, err error) {
			if err != context.DeadlineExceeded {
				fmt.Fprintln(os.Stderr, "err", t, p, err)
			}
		})
		fs.EachRecord(func(r *kgo.Record) {
			recs++
			bytes += int64(len(r.Key) + len(r.Value))
			labdump.Record(r.Partition, r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value)
		})
		if fs.NumRecords() > 0 {
			last = time.Now()
		}
		if *n > 0 && recs >= *n {
			break
		}
	}
	labdump.Close()
	d := last.Sub(start).Seconds()
	if *mode == "group" || *mode == "next" {
		if err := cl.CommitUncommittedOffsets(ctx); err != nil {
			fmt.Println("commit:", err)
		}
	}
	fmt.Printf("franz-go %s records=%d bytes=%d secs=%.3f MB/s=%.1f msgs/s=%.0f\n", *mode, recs, bytes, d, float64(bytes)/1e6/d, float64(recs)/d)
}

// admin calls what an operator would; nogroups leaves out groups, log dirs and epochs.
func admin(cl *kgo.Client, t string, nogroups bool) {
	a := kadm.NewClient(cl)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p := func(what string, v any, err error) {
		fmt.Printf("%-22s err=%v %.160s\n", what, err, fmt.Sprintf("%+v", v))
	}
	m, err := a.Metadata(ctx)
	p("Metadata", m.Cluster, err)
	av, err := a.ApiVersions(ctx)
	p("ApiVersions", len(av), err)
	so, err := a.ListStartOffsets(ctx, t)
	p("ListStartOffsets", so, err)
	eo, err := a.ListEndOffsets(ctx, t)
	p("ListEndOffsets", eo, err)
	if !nogroups {
		co, err := a.ListCommittedOffsets(ctx, t)
		p("ListCommittedOffsets", co, err)
	}
	ts, err := a.ListOffsetsAfterMilli(ctx, time.Now().Add(-time.Hour).UnixMilli(), t)
	p("ListOffsetsAfterMilli", ts, err)
	mx, err := a.ListMaxTimestampOffsets(ctx, t)
	p("ListMaxTimestamp", mx, err)
	if nogroups {
		tc, err := a.DescribeTopicConfigs(ctx, t)
		p("DescribeTopicConfigs", len(tc), err)
		return
	}
	gs, err := a.ListGroups(ctx)
	p("ListGroups", gs.Groups(), err)
	dg, err := a.DescribeGroups(ctx)
	p("DescribeGroups", len(dg), err)
	lag, err := a.Lag(ctx)
	p("Lag", len(lag), err)
	tc, err := a.DescribeTopicConfigs(ctx, t)
	p("DescribeTopicConfigs", len(tc), err)
	ld, err := a.DescribeAllLogDirs(ctx, nil)
	p("DescribeAllLogDirs", len(ld), err)
	oe, err := a.OffetForLeaderEpoch(ctx, kadm.OffsetForLeaderEpochRequest{})
	p("OffsetForLeaderEpoch", len(oe), err)
}
