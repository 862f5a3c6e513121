// segmentio/kafka-go lab client. Modes: group, direct (a reader for each partition,
// one after the other; it stops at the high watermark of the first fetch plus silence).
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"lab/labdump"

	kafka "github.com/segmentio/kafka-go"
)

func main() {
	b := flag.String("b", "127.0.0.1:9092", "bootstrap")
	t := flag.String("t", "hello", "topic")
	mode := flag.String("m", "group", "group|direct")
	g := flag.String("g", "lab-kafkago", "group")
	id := flag.String("id", "lab-kafkago", "client id")
	ci := flag.Duration("ci", time.Second, "commit interval; 0 commits each message and waits (the library default): ~3000 msgs/s")
	debug := flag.Bool("v", false, "debug log")
	flag.Parse()
	dialer := &kafka.Dialer{ClientID: *id, Timeout: 10 * time.Second}
	rc := kafka.ReaderConfig{Brokers: []string{*b}, Topic: *t, MaxBytes: 10e6, MaxWait: 500 * time.Millisecond, Dialer: dialer}
	if *debug {
		rc.Logger = log.New(os.Stderr, "", log.Lmicroseconds)
	}
	rc.ErrorLogger = log.New(os.Stderr, "ERR ", log.Lmicroseconds)
	var n, by int64
	start := time.Now()
	last := start
	if *mode == "group" {
		rc.GroupID, rc.StartOffset, rc.CommitInterval = *g, kafka.FirstOffset, *ci
		n, by, last = read(rc, -1, start)
	} else {
		ps, err := dialer.LookupPartitions(context.Background(), "tcp", *b, *t)
		if err != nil {
			log.Fatal(err)
		}
		for _, p := range ps {
			cn, err := dialer.DialLeader(context.Background(), "tcp", *b, *t, p.ID)
			if err != nil {
				log.Fatal(err)
			}
			first, end, err := cn.ReadOffsets()
			cn.Close()
			if err != nil {
				log.Fatal(err)
			}
			if first == end {
				continue
			}
			rc.Partition = p.ID
			m, k, l := read(rc, end, time.Now())
			n, by = n+m, by+k
			if l.After(last) {
				last = l
			}
		}
	}
	labdump.Close()
	if n == 0 {
		os.Exit(1)
	}
	d := last.Sub(start).Seconds()
	fmt.Printf("kafka-go %s records=%d bytes=%d secs=%.3f MB/s=%.1f msgs/s=%.0f\n", *mode, n, by, d, float64(by)/1e6/d, float64(n)/d)
}

// read goes on until the record at end - 1 was read (end >= 0), or until silence.
func read(rc kafka.ReaderConfig, end int64, start time.Time) (n, by int64, last time.Time) {
	r := kafka.NewReader(rc)
	defer r.Close()
	last = start
	if end >= 0 {
		r.SetOffset(kafka.FirstOffset)
	}
	for {
		c, cancel := context.WithTimeout(context.Background(), labdump.Idle())
		m, err := r.ReadMessage(c)
		cancel()
		if err != nil {
			if n > 0 || time.Since(start) > 40*time.Second {
				return
			}
			continue
		}
		n++
		by += int64(len(m.Key) + len(m.Value))
		last = time.Now()
		labdump.Record(int32(m.Partition), m.Offset, m.Time.UnixMilli(), m.Key, m.Value)
		if end >= 0 && m.Offset >= end-1 {
			return
		}
	}
}
