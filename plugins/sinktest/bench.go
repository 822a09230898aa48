package sinktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// bench is one check under way: a sink, its host and a table of its own.
type bench struct {
	ctx     context.Context
	opts    *Options
	target  Target
	host    *Host
	run     *instance
	sink    sinkv1.SinkClient
	desc    *sinkv1.DescribeResponse
	ref     *sinkv1.TableRef
	notes   []string
	closers []func()
	started []*instance
	limit   time.Duration // of one call
	name    string
	tables  int
}

// verdict ends a check early.
type verdict struct {
	status Status
	reason string
}

func (b *bench) fail(format string, args ...any) {
	panic(verdict{Failed, fmt.Sprintf(format, args...)})
}

func (b *bench) skip(s Status, format string, args ...any) {
	panic(verdict{s, fmt.Sprintf(format, args...)})
}

func (b *bench) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// that fails the check unless the condition holds. The text says what must hold.
func (b *bench) that(holds bool, format string, args ...any) {
	if !holds {
		b.fail(format, args...)
	}
}

func (b *bench) ok(err error, call string) {
	if err != nil {
		b.fail("%s fails: %s", call, said(err))
	}
}

// said is an error's text without gRPC's envelope.
func said(err error) string {
	if r := new(sdk.RefusalError); errors.As(sdk.FromStatus(err), &r) {
		return fmt.Sprintf("%s (%s)", r.Error(), strings.ToLower(strings.TrimPrefix(r.Kind.String(), "REFUSAL_KIND_")))
	}
	if status.Code(err) == codes.DeadlineExceeded {
		return "no answer in time: " + status.Convert(err).Message()
	}
	return status.Convert(err).Message()
}

// refused: a call is refused, and with the right kind.
func (b *bench) refused(err, kind error, call string) {
	b.that(err != nil, "%s succeeds; it must be refused as %q", call, kind)
	b.that(errors.Is(sdk.FromStatus(err), kind), "%s must be refused as %q; the answer is: %s", call, kind, said(err))
}

func (b *bench) needs(c sinkv1.Capability) {
	if !b.has(c) {
		b.skip(NotOffered, "Describe does not have %s", c)
	}
}

func (b *bench) has(c sinkv1.Capability) bool {
	for _, have := range b.desc.GetCapabilities() {
		if have == c {
			return true
		}
	}
	return false
}

func (b *bench) needsProcess() {
	if b.run.process == nil {
		b.skip(Skipped, "it needs a process: test the built sink with `signet sink test`, or sinktest.Command")
	}
}

// call gives the context of one call.
func (b *bench) call() context.Context {
	ctx, cancel := context.WithTimeout(b.ctx, b.limit)
	b.closers = append(b.closers, cancel)
	return ctx
}

// open makes the host and starts the sink.
func (b *bench) open(check string) error {
	b.name = strings.ReplaceAll(check, "-", "_") + "_" + strings.ToLower(rand.Text()[:8])
	b.host = NewHost("")
	b.host.secrets, b.host.dial = b.opts.Secrets, b.opts.Dial
	b.place()
	if err := b.start(); err != nil {
		return err
	}
	return b.openCatalog()
}

// place names a table and its location. The URI has a space and a percent sign that nobody may decode.
func (b *bench) place() {
	name := b.name
	if b.tables++; b.tables > 1 {
		name = fmt.Sprintf("%s_%d", b.name, b.tables)
	}
	b.ref = &sinkv1.TableRef{Catalog: "conformance", Namespace: []string{"ns"}, Name: name}
	b.host.set(func(h *Host) { h.Location = "file:///warehouse/ns/" + name + " %41" })
}

func (b *bench) openCatalog() error {
	if b.desc.GetCommitPoint() != sinkv1.CommitPoint_COMMIT_POINT_CATALOG {
		return nil
	}
	if b.opts.Catalog == nil {
		return errors.New("the sink commits through a catalog, and Options.Catalog has none")
	}
	c, err := b.opts.Catalog(b.ctx, "ns", b.ref.GetName())
	if err != nil {
		return fmt.Errorf("open the suite's catalog: %w", err)
	}
	b.closers = append(b.closers, func() { _ = c.Close() })
	b.host.set(func(h *Host) { h.catalog, h.Location = c, c.Location() })
	return nil
}

// fresh goes on with another table, which does not exist yet, and a host that has seen nothing.
func (b *bench) fresh() {
	b.place()
	b.host.set(func(h *Host) {
		h.commits, h.asked = nil, 0
		clear(h.objects)
	})
	b.ok(b.openCatalog(), "open the suite's catalog")
}

// start starts an instance and makes it the one that is called.
func (b *bench) start() error {
	ctx, cancel := context.WithTimeout(b.ctx, b.opts.Limits.Call)
	defer cancel()
	i, err := b.target.start(ctx, b.opts, b.host.Register)
	if err != nil {
		return err
	}
	b.started = append(b.started, i)
	b.run, b.sink, b.desc = i, i.client, i.desc
	b.host.set(func(h *Host) { h.desc = i.desc })
	return nil
}

// restart kills the process and starts it again: what it remembered is gone.
func (b *bench) restart() {
	b.run.kill()
	select {
	case <-b.run.process.Exited():
	case <-time.After(b.opts.Limits.End):
		b.fail("the process is still there %v after SIGKILL", b.opts.Limits.End)
	}
	if err := b.start(); err != nil {
		b.fail("after SIGKILL it does not start again: %v", err)
	}
}

// end stops what was started. Its error is that of a sink that does not end.
func (b *bench) end() {
	for _, i := range b.started {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), b.opts.Limits.End)
		_ = i.stop(ctx)
		cancel()
	}
	for _, c := range b.closers {
		c()
	}
}
