package sql

import "strings"

// AddFiles is ALTER TABLE table ADD FILES FROM names [WITH (options)].
type AddFiles struct {
	Table Name
	Files []string // names and patterns
	// Copy makes files of the table's own out of the files' rows; otherwise the files become the table's where they are.
	Copy bool
	// CheckDuplicates refuses files that the table has already.
	CheckDuplicates bool
}

func (*AddFiles) statement() {}

const addFilesHint = "for example ALTER TABLE t ADD FILES FROM 'dir/*.parquet' WITH (copy = true)"

// addFiles reads what follows ADD FILES.
func (p *parser) addFiles(table Name) (Statement, error) {
	a := &AddFiles{Table: table, CheckDuplicates: true}
	if err := p.expect("FROM", addFilesHint); err != nil {
		return nil, err
	}
	file := func() error {
		t := p.peek()
		if t.Kind != KindString {
			return p.unexpected("a file's name or a pattern, as a string", addFilesHint)
		}
		p.pos++
		a.Files = append(a.Files, t.Value)
		return nil
	}
	read := file
	if p.peek().is("(") {
		read = func() error { return p.list(file) }
	}
	if err := read(); err != nil {
		return nil, err
	}
	if p.accept("WITH") {
		seen := map[string]bool{}
		if err := p.list(func() error { return p.addFilesOption(a, seen) }); err != nil {
			return nil, err
		}
	}
	return a, p.end("ADD FILES")
}

func (p *parser) addFilesOption(a *AddFiles, seen map[string]bool) error {
	at := p.peek()
	name := strings.ToLower(at.Value)
	if at.Kind != KindString {
		id, err := p.ident("an option")
		if err != nil {
			return err
		}
		name = strings.ToLower(id.Text)
	} else {
		p.pos++
	}
	options := map[string]*bool{"copy": &a.Copy, "check_duplicates": &a.CheckDuplicates}
	option := options[name]
	switch {
	case option == nil:
		return p.failAt(at, "ADD FILES has no option "+DisplayIdent(name), "options are copy and check_duplicates")
	case seen[name]:
		return p.failAt(at, "the option "+name+" is given twice", "")
	}
	seen[name] = true
	if err := p.expect("=", "write "+name+" = true"); err != nil {
		return err
	}
	switch t := p.peek(); {
	case p.accept("TRUE"), t.Kind == KindString && strings.EqualFold(t.Value, "true"):
		*option = true
	case p.accept("FALSE"), t.Kind == KindString && strings.EqualFold(t.Value, "false"):
		*option = false
	default:
		return p.unexpected("TRUE or FALSE", "write "+name+" = true or "+name+" = false")
	}
	if p.peek().Kind == KindString {
		p.pos++
	}
	return nil
}
