// Command receiver is what the webhook sink tells: it prints each event once, however often it comes, and answers its first requests as a server that is busy.
//
//	receiver -fail 2
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	fail := flag.Int("fail", 0, "how many requests get 503 Service Unavailable before the first is taken")
	flag.Parse()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the process
	if err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
	fmt.Println("listening on", l.Addr())
	server := &http.Server{Handler: &receiver{fail: *fail, done: map[string]bool{}}, ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintln(os.Stderr, "receiver:", server.Serve(l))
	os.Exit(1)
}

type receiver struct {
	mu   sync.Mutex
	fail int
	done map[string]bool // keys; a receiver for real use keeps them where it keeps what it did, and writes both in one transaction
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var event struct {
		Table, Version string
		Rows           int64
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20)).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key := req.Header.Get("Idempotency-Key")
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fail > 0:
		r.fail--
		fmt.Println("busy: 503")
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.done[key]:
		fmt.Println("known already")
	default:
		r.done[key] = true
		fmt.Printf("%s has version %s, with %d more rows\n", event.Table, event.Version, event.Rows)
	}
}
