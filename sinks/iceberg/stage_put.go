package iceberg

import (
	"context"
	"fmt"

	"github.com/signet-io/signet/plugins/sdk"
)

// sendBytes is how much of an Iceberg manifest is sent at a time while it is made, in bytes.
const sendBytes = 1 << 20

// creator is a Host to which an object can be sent while it is made; *sdk.Host is one.
type creator interface {
	Create(ctx context.Context, uri string, opts ...sdk.PutOption) (*sdk.Writer, error)
}

// early is an Iceberg manifest that is sent while it is made: after the last task only its end is left to be sent. Nothing is there before its put has
// ended well. A put that fails is no harm: the manifest is in memory, and is put whole, under another name.
type early struct {
	w    *sdk.Writer
	path string
	sent int
	off  bool // a put has failed
}

// name is a new name for a manifest of this call.
func (st *staging) name() string {
	st.named++
	return metadataPath(st.plan.Location, "%s-%s-m%d.avro", st.job, st.nonce, st.named-1)
}

// send sends what is ready of the current manifest, if that is worth a message.
func (st *staging) send(ctx context.Context) {
	e := &st.early
	ready := st.w.Ready()
	if e.off || len(ready)-e.sent < st.sendBytes {
		return
	}
	if e.w == nil {
		c, ok := st.host.(creator)
		if !ok {
			e.off = true
			return
		}
		path := st.name()
		w, err := c.Create(ctx, path)
		if err != nil {
			e.off = true
			return
		}
		e.w, e.path = w, path
	}
	if _, err := e.w.Write(ready[e.sent:]); err != nil {
		st.giveUp()
		return
	}
	e.sent = len(ready)
}

// giveUp leaves the current put, if there is one, and begins no other.
func (st *staging) giveUp() {
	if st.early.w != nil {
		st.early.w.Abort()
	}
	st.early = early{off: true}
}

// put creates the manifest that has ended, and answers its name.
func (st *staging) put(ctx context.Context, data []byte) (path string, err error) {
	if e := st.early; e.w != nil {
		if err := hit("iceberg.stage.before-put"); err != nil {
			return "", err
		}
		_, err := e.w.Write(data[e.sent:])
		if err == nil {
			err = e.w.Close()
		}
		if err == nil {
			st.early = early{}
			return e.path, hit("iceberg.stage.after-put")
		}
		if ctx.Err() != nil {
			return "", fmt.Errorf("write Iceberg manifest %s: %w", e.path, err)
		}
		st.giveUp()
	}
	path = st.name()
	return path, putManifest(ctx, st.host, path, data)
}
