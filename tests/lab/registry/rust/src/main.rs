//! Decodes kept values with schema_registry_converter: `registry-rust - REGISTRY TOPIC 0`, lines of hex in, the protocol of ../README.md. It
//! reads no topic, and speaks no TLS.
use apache_avro::types::Value;
use schema_registry_converter::blocking::avro::AvroDecoder;
use schema_registry_converter::blocking::schema_registry::SrSettings;
use serde_json::{json, Map, Value as Json};
use std::io::{BufRead, Write};

fn hex(b: &[u8]) -> String {
    b.iter().map(|x| format!("{x:02x}")).collect()
}

fn pure(v: Value) -> Json {
    match v {
        Value::Null => Json::Null,
        Value::Boolean(b) => json!(b),
        Value::Int(n) | Value::Date(n) => json!(n),
        Value::Long(n) | Value::TimestampMicros(n) => json!(n),
        Value::Double(d) => json!(format!("d:{:016x}", d.to_bits())),
        Value::String(s) => json!(format!("s:{s}")),
        Value::Uuid(u) => json!(format!("s:{u}")),
        Value::Fixed(_, b) => json!(format!("b:{}", hex(&b))),
        Value::Duration(d) => json!(format!("b:{}", hex(&<[u8; 12]>::from(d)))),
        Value::Union(_, b) => pure(*b),
        Value::Array(a) => Json::Array(a.into_iter().map(pure).collect()),
        Value::Map(m) => Json::Object(m.into_iter().map(|(k, x)| (k, pure(x))).collect::<Map<_, _>>()),
        Value::Record(r) => Json::Object(r.into_iter().map(|(k, x)| (k, pure(x))).collect::<Map<_, _>>()),
        other => panic!("not expected: {other:?}"),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    assert_eq!(args[1], "-", "it reads no topic");
    let login: Json = serde_json::from_str(&std::env::var("LAB_LOGIN").expect("LAB_LOGIN")).expect("LAB_LOGIN is JSON");
    let settings = SrSettings::new_builder(args[2].clone())
        .set_basic_authorization(login["user"].as_str().unwrap(), login["password"].as_str())
        .build()
        .expect("settings");
    let decoder = AvroDecoder::new(settings);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let b: Vec<u8> = (0..line.len() / 2).map(|i| u8::from_str_radix(&line[2 * i..2 * i + 2], 16).expect("hex")).collect();
        match decoder.decode(Some(&b)) {
            Ok(r) => {
                let id = u32::from_be_bytes([b[1], b[2], b[3], b[4]]);
                writeln!(out, "{}", json!({"id": id, "value": pure(r.value)})).expect("output");
            }
            Err(e) => {
                eprintln!("{e}");
                std::process::exit(1);
            }
        }
    }
}
