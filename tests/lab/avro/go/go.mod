module labavro

go 1.22.0

require (
	github.com/hamba/avro/v2 v2.27.0
	github.com/linkedin/goavro/v2 v2.13.1
)

require (
	github.com/golang/snappy v0.0.4 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/mitchellh/mapstructure v1.5.0 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
)
