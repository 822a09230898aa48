package sql

import "strconv"

// describeHistory reads what follows DESCRIBE HISTORY: table [LIMIT n].
func (p *parser) describeHistory() (Statement, error) {
	p.accept("HISTORY")
	n, err := p.tableName()
	if err != nil {
		return nil, err
	}
	d := &DescribeHistory{Table: n}
	if p.accept("LIMIT") {
		if d.Limit, err = p.wholeNumber("a number of commits", 1); err != nil {
			return nil, err
		}
	}
	return d, p.end("DESCRIBE HISTORY")
}

// vacuum reads VACUUM table [RETAIN n HOURS] [DRY RUN].
func (p *parser) vacuum() (Statement, error) {
	p.pos++
	if p.peek().is("TABLE") && p.peekAt(1).isName() {
		p.pos++
	}
	n, err := p.tableName()
	if err != nil {
		return nil, err
	}
	v := &Vacuum{Table: n}
	if t := p.peek(); t.isAny("FULL", "LITE", "USING") {
		return nil, p.failAt(t, "VACUUM … "+keyword(t)+" is not supported", "VACUUM t looks at all files of the table")
	}
	if p.accept("RETAIN") {
		hours, err := p.wholeNumber("a number of hours", 0)
		if err != nil {
			return nil, err
		}
		if !p.accept("HOURS") {
			return nil, p.unexpected("HOURS", "for example VACUUM t RETAIN 168 HOURS")
		}
		v.RetainHours = &hours
	}
	v.DryRun = p.accept("DRY", "RUN")
	return v, p.end("VACUUM")
}

// maxHours keeps times in range: a hundred thousand years.
const maxHours = 100_000 * 366 * 24

func (p *parser) wholeNumber(what string, least int64) (int64, error) {
	t := p.peek()
	n, err := strconv.ParseInt(t.Value, 10, 64)
	if t.Kind != KindNumber || err != nil || n < least || n > maxHours {
		return 0, p.unexpected(what, "a whole number from "+strconv.FormatInt(least, 10)+" on")
	}
	p.pos++
	return n, nil
}
