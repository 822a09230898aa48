package log

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// ParseAdds reads lines of add actions for who writes the lines themselves to the log, and only needs to know which files they are: of statistics it leaves
// nothing but numRecords, and tags and unknown fields are left out. All of it is looked at: what ParseCommit refuses is refused here, as is any other action, and
// a field that comes twice in a line, since readers disagree on which holds. What it gives takes a fraction of the lines' size, and nothing in it is a part of them.
func ParseAdds(lines []byte) ([]*Add, error) {
	all := make([]Add, 0, bytes.Count(lines, []byte{'\n'})+1)
	p := &addsParser{partitions: map[string]map[string]*string{}, stats: map[string]*string{}}
	r := &jsonReader{}
	for number := 1; len(lines) > 0; number++ {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		r.data, r.at = line, 0
		a, err := p.line(r)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrCorrupt, number, err)
		}
		all = append(all, a)
	}
	out := make([]*Add, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out, nil
}

// addsParser shares what many files have in common.
type addsParser struct {
	partitions map[string]map[string]*string // by their text
	stats      map[string]*string            // by numRecords
	names      []string                      // of the fields of an add so far
}

func (p *addsParser) line(r *jsonReader) (a Add, err error) {
	if err := r.take('{'); err != nil {
		return a, err
	}
	if name, err := r.chars(); err != nil {
		return a, err
	} else if string(name) != "add" {
		return a, fmt.Errorf("want an add, not %.20q", name)
	}
	if err := r.take(':'); err != nil {
		return a, err
	}
	if r.null() {
		return a, errors.New("want an add, not null")
	}
	if err := p.add(r, &a); err != nil {
		return a, within("add", err)
	}
	if err := r.take('}'); err != nil {
		return a, err
	}
	return a, r.end()
}

func (p *addsParser) add(r *jsonReader, a *Add) error {
	p.names = p.names[:0]
	err := r.object(func(name string) (err error) {
		if slices.Contains(p.names, name) {
			return errTwice
		}
		p.names = append(p.names, name)
		switch name {
		case "partitionValues":
			a.PartitionValues, err = p.partition(r)
		case "stats":
			a.Stats, err = p.records(r)
		case "tags":
			_, err = r.texts()
		default:
			err = r.addField(a, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	a.Extra = nil
	return a.check()
}

var errTwice = errors.New("it comes twice")

// partition gives files of one partition the same map.
func (p *addsParser) partition(r *jsonReader) (map[string]*string, error) {
	r.peek()
	start := r.at
	if err := r.skip(0); err != nil {
		return nil, err
	}
	text := r.data[start:r.at]
	if known, ok := p.partitions[string(text)]; ok {
		return known, nil
	}
	values, err := (&jsonReader{data: text}).texts()
	if err == nil {
		p.partitions[string(text)] = values
	}
	return values, err
}

// rowsFirst is how the statistics begin that this module writes, as they are in a line.
var rowsFirst = []byte(`"{\"numRecords\":`)

// records gives statistics that say no more than how many rows there are; other statistics than ours are given as they are.
func (p *addsParser) records(r *jsonReader) (*string, error) {
	r.peek()
	rest, ours := bytes.CutPrefix(r.data[r.at:], rowsFirst)
	digits := 0
	for ours && digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits == len(rest) || rest[digits] != ',' && rest[digits] != '}' {
		return optional(r, r.text)
	}
	if err := r.skip(0); err != nil {
		return nil, err
	}
	known, ok := p.stats[string(rest[:digits])]
	if !ok {
		n, err := strconv.ParseInt(string(rest[:digits]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("numRecords: %w", err)
		}
		text := `{"numRecords":` + strconv.FormatInt(n, 10) + `}`
		known, p.stats[string(rest[:digits])] = &text, &text
	}
	return known, nil
}
