// sarama lab client. Modes: group, direct.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"sync/atomic"
	"time"

	"lab/labdump"

	"github.com/IBM/sarama"
)

type h struct {
	n, b *int64
	last *int64
}

func (h) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (x h) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for m := range c.Messages() {
		atomic.AddInt64(x.n, 1)
		atomic.AddInt64(x.b, int64(len(m.Key)+len(m.Value)))
		atomic.StoreInt64(x.last, time.Now().UnixNano())
		labdump.Record(m.Partition, m.Offset, m.Timestamp.UnixMilli(), m.Key, m.Value)
		s.MarkMessage(m, "")
	}
	return nil
}

func main() {
	b := flag.String("b", "127.0.0.1:9092", "bootstrap")
	t := flag.String("t", "hello", "topic")
	mode := flag.String("m", "group", "group|direct")
	g := flag.String("g", "lab-sarama", "group")
	id := flag.String("id", "lab-sarama", "client id")
	ver := flag.String("ver", "", "protocol version (default: the library's)")
	session := flag.Duration("session", 0, "session timeout (0: the library's); heartbeats and commits come six times as often")
	debug := flag.Bool("v", false, "debug log")
	idle := flag.Duration("idle", labdump.Idle(), "stop after silence")
	flag.Parse()
	if *debug {
		sarama.Logger = log.New(os.Stderr, "", log.Lmicroseconds)
	}
	c := sarama.NewConfig()
	c.ClientID = *id
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	if *session > 0 {
		c.Consumer.Group.Session.Timeout = *session
		c.Consumer.Group.Heartbeat.Interval = *session / 6
		c.Consumer.Offsets.AutoCommit.Interval = *session / 6
	}
	if *ver != "" {
		v, err := sarama.ParseKafkaVersion(*ver)
		if err != nil {
			log.Fatal(err)
		}
		c.Version = v
	}
	var n, by int64
	start := time.Now()
	last := start.UnixNano()
	hd := h{&n, &by, &last}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	if *mode == "group" {
		cg, err := sarama.NewConsumerGroup([]string{*b}, *g, c)
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			for ctx.Err() == nil {
				if err := cg.Consume(ctx, []string{*t}, hd); err != nil && ctx.Err() == nil {
					fmt.Println("consume:", err)
					time.Sleep(time.Second)
				}
			}
			cg.Close()
			close(done)
		}()
	} else {
		co, err := sarama.NewConsumer([]string{*b}, c)
		if err != nil {
			log.Fatal(err)
		}
		ps, err := co.Partitions(*t)
		if err != nil {
			log.Fatal(err)
		}
		for _, p := range ps {
			pc, err := co.ConsumePartition(*t, p, sarama.OffsetOldest)
			if err != nil {
				log.Fatal(err)
			}
			go func() {
				for m := range pc.Messages() {
					atomic.AddInt64(&n, 1)
					atomic.AddInt64(&by, int64(len(m.Key)+len(m.Value)))
					atomic.StoreInt64(&last, time.Now().UnixNano())
					labdump.Record(m.Partition, m.Offset, m.Timestamp.UnixMilli(), m.Key, m.Value)
				}
			}()
		}
		close(done)
	}
	for {
		time.Sleep(50 * time.Millisecond)
		if atomic.LoadInt64(&n) == 0 {
			if time.Since(start) > 40*time.Second {
				fmt.Println("timeout")
				os.Exit(1)
			}
			continue
		}
		if time.Since(time.Unix(0, atomic.LoadInt64(&last))) > *idle {
			break
		}
	}
	cancel()
	<-done
	labdump.Close()
	d := float64(last-start.UnixNano()) / 1e9
	fmt.Printf("sarama %s version=%s records=%d bytes=%d secs=%.3f MB/s=%.1f msgs/s=%.0f\n", *mode, c.Version, n, by, d, float64(by)/1e6/d, float64(n)/d)
}
