// Command go-client writes to a table from Go, so that it is written once however often this program runs, and reads it.
//
//	go-client ADDRESS KEY
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/signet-io/signet/client"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go-client ADDRESS KEY")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "go-client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, key string) error {
	c, err := client.Dial(address, client.WithRetry(10*time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := load(ctx, c, key); err != nil {
		return err
	}
	return report(ctx, c)
}

// load runs the INSERT of a key. The key names the load, as a date does, and not the try.
func load(ctx context.Context, c *client.Client, key string) error {
	const insert = "INSERT INTO lake.demo.orders SELECT i, i % 7 FROM range(1000) r(i)"
	res, err := c.Exec(ctx, insert, client.WithIdempotencyKey(key), client.WithSubmitted(func(_ string, existing bool) {
		fmt.Printf("submitted under the key %q; it was known before: %v\n", key, existing)
	}))
	var (
		pending *client.PendingError
		refused *client.Error
	)
	switch {
	case errors.As(err, &pending): // neither a success nor a failure: the same call again, later, is safe
		return fmt.Errorf("not known yet, run this again: %w", err)
	case errors.As(err, &refused): // a failure: nothing is visible
		return fmt.Errorf("refused (%s): %w", refused.Code, err)
	case err != nil:
		return err
	}
	rows, err := res.Rows(ctx) // of a write: one, with what it did
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		b := rows.RecordBatch()
		for _, name := range []string{"rows", "version", "attempts"} {
			i := b.Schema().FieldIndices(name)[0]
			fmt.Printf("  %s: %s\n", name, b.Column(i).ValueStr(0))
		}
	}
	return rows.Err()
}

// report reads rows batch by batch.
func report(ctx context.Context, c *client.Client) error {
	rows, err := c.Query(ctx, "SELECT weekday, count(*) AS orders FROM lake.demo.orders GROUP BY weekday ORDER BY weekday")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		b := rows.RecordBatch()
		weekday, orders := b.Column(0).(*array.Int64), b.Column(1).(*array.Int64) // BIGINT is Arrow's int64
		for i := range int(b.NumRows()) {
			fmt.Printf("weekday %d: %d orders\n", weekday.Value(i), orders.Value(i))
		}
	}
	return rows.Err()
}
