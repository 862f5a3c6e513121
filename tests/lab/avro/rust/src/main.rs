//! apache-avro: parses schemas.
use std::io::{BufRead, Write};

fn main() {
    let stdout = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let case: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = match apache_avro::Schema::parse_str(case["schema"].as_str().unwrap()) {
            Ok(_) => serde_json::json!({"ok": true, "values": []}),
            Err(e) => serde_json::json!({"ok": false, "error": e.to_string()}),
        };
        let mut out = stdout.lock();
        writeln!(out, "{}", answer).unwrap();
        out.flush().unwrap();
    }
}
