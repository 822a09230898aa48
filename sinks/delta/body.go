package delta

import (
	"bytes"
	"io"

	"github.com/signet-io/signet/sinks/delta/log"
)

// body is the content of a commit file: actions, and the lines of the batch's adds, which are taken out of its references one after the other. A commit of
// 100,000 files is 50 MB, and never in memory as a whole.
type body struct {
	head  []byte
	batch *batch
}

func newBody(head []log.Action, b *batch) (*body, error) {
	text, err := encode(head)
	return &body{head: text, batch: b}, err
}

// encode gives the lines of actions.
func encode(actions []log.Action) (out []byte, err error) {
	for i := range actions {
		if out, err = log.AppendAction(out, &actions[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// write writes all of it. Errors are those of w, and errRef.
func (b *body) write(w io.Writer) error {
	if _, err := w.Write(b.head); err != nil {
		return err
	}
	var raw, changed []byte
	for _, in := range b.batch.refs {
		_, lines, grown, err := unpack(in, raw)
		if err != nil {
			return err
		}
		raw = grown
		if b.batch.plan.rearranges() {
			if changed, err = rearranged(changed[:0], lines); err != nil {
				return err
			}
			lines = changed
		}
		if _, err := w.Write(lines); err != nil {
			return err
		}
	}
	return nil
}

// rearranged are the lines of files whose rows were there before.
func rearranged(dst, lines []byte) ([]byte, error) {
	actions, err := log.ParseCommit(lines)
	for i := range actions {
		if a := actions[i].Add; a != nil && err == nil {
			a.DataChange = false
			dst, err = log.AppendAction(dst, &actions[i])
		}
	}
	return dst, err
}

// actions are all of the body's.
func (b *body) actions() ([]log.Action, error) {
	var out bytes.Buffer
	if err := b.write(&out); err != nil {
		return nil, err
	}
	return log.ParseCommit(out.Bytes())
}
