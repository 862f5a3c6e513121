// Package labdump is what the Go lab clients share: LAB_DUMP=FILE writes one line a record
// (partition, offset, timestamp, key and value in base64; "-" is null, "=" is empty), LAB_IDLE_MS is the
// silence after which a client that does not know the end stops. LAB_FLUSH=1: each record is written at once.
package labdump

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

var (
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	live = os.Getenv("LAB_FLUSH") == "1"
)

func init() {
	if name := os.Getenv("LAB_DUMP"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			panic(err)
		}
		file, out = f, bufio.NewWriterSize(f, 1<<20)
	}
}

func b64(b []byte) string {
	if b == nil {
		return "-"
	}
	if len(b) == 0 {
		return "="
	}
	return base64.StdEncoding.EncodeToString(b)
}

// Record writes one record; any goroutine.
func Record(partition int32, offset, timestampMs int64, key, value []byte) {
	if out == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	fmt.Fprintf(out, "%d\t%d\t%d\t%s\t%s\n", partition, offset, timestampMs, b64(key), b64(value))
	if live {
		out.Flush()
	}
}

// Close flushes the dump.
func Close() {
	mu.Lock()
	defer mu.Unlock()
	if out != nil {
		out.Flush()
		file.Close()
		out = nil
	}
}

// Idle is the silence that ends a run.
func Idle() time.Duration {
	if ms, err := strconv.Atoi(os.Getenv("LAB_IDLE_MS")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return 3 * time.Second
}
