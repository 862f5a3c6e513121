package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// login reads LAB_LOGIN (see py/consume.py): how to log in, and whether by TLS.
func login() []kgo.Opt {
	var w struct{ Mechanism, User, Password, Ca, Cert, Key string }
	text := os.Getenv("LAB_LOGIN")
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		log.Fatal(err)
	}
	var opts []kgo.Opt
	switch w.Mechanism {
	case "PLAIN":
		opts = append(opts, kgo.SASL(plain.Auth{User: w.User, Pass: w.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: w.User, Pass: w.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: w.User, Pass: w.Password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		opts = append(opts, kgo.SASL(oauth.Oauth(func(context.Context) (oauth.Auth, error) { return oauth.Auth{Token: w.Password}, nil })))
	}
	if w.Ca == "" {
		return opts
	}
	pem, err := os.ReadFile(w.Ca)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	c := &tls.Config{RootCAs: pool}
	if w.Cert != "" {
		pair, err := tls.LoadX509KeyPair(w.Cert, w.Key)
		if err != nil {
			log.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return append(opts, kgo.DialTLSConfig(c))
}
