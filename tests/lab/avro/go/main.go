// goavro and hamba/avro: both must parse each schema.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	hamba "github.com/hamba/avro/v2"
	"github.com/linkedin/goavro/v2"
)

type answer struct {
	OK     bool     `json:"ok"`
	Values []string `json:"values"`
	Error  string   `json:"error,omitempty"`
}

func try(schema string) answer {
	if _, err := goavro.NewCodec(schema); err != nil {
		return answer{Error: "goavro: " + err.Error()}
	}
	if _, err := hamba.ParseWithCache(schema, "", &hamba.SchemaCache{}); err != nil {
		return answer{Error: "hamba: " + err.Error()}
	}
	return answer{OK: true, Values: []string{}}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var c struct {
				Schema string `json:"schema"`
			}
			if e := json.Unmarshal(line, &c); e != nil {
				panic(e)
			}
			if e := out.Encode(try(c.Schema)); e != nil {
				panic(e)
			}
		}
		if err != nil {
			return
		}
	}
}
