package flightsql

import "strings"

func compareText(a, b string) int { return strings.Compare(a, b) }

// matches tells whether a name fits a pattern of LIKE: % stands for any characters, _ for one, and a backslash makes the next one literal. No
// pattern fits every name.
func matches(pattern *string, name string) bool {
	return pattern == nil || like([]rune(*pattern), []rune(name))
}

// like walks both once and comes back to the last % only, so that no pattern takes long.
func like(p, s []rune) bool {
	back, from := -1, 0 // behind the last %, and what it has taken up to
	i, j := 0, 0
	for j < len(s) {
		switch c, n := at(p, i); {
		case n == 1 && c == '%':
			i++
			back, from = i, j
			continue
		case n == 1 && c == '_' || n > 0 && c == s[j]: // an unescaped % was the case before
			i, j = i+n, j+1
			continue
		}
		if back < 0 {
			return false
		}
		from++
		i, j = back, from
	}
	for i < len(p) && p[i] == '%' {
		i++
	}
	return i == len(p)
}

// at is the character of the pattern at i, and how many it takes to write it: 2 if it is escaped, 0 at the end.
func at(p []rune, i int) (rune, int) {
	switch {
	case i >= len(p):
		return 0, 0
	case p[i] == '\\' && i+1 < len(p):
		return p[i+1], 2
	}
	return p[i], 1
}
