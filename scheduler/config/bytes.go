package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size: 4GiB, 512MiB, 64KiB, 10GB, or plain bytes.
type Bytes int64

var units = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseBytes reads a size. Units are not case-sensitive; a space before them is allowed.
func ParseBytes(s string) (Bytes, error) {
	text, factor := strings.TrimSpace(s), 1.0
	for _, u := range units {
		if len(text) > len(u.suffix) && strings.EqualFold(text[len(text)-len(u.suffix):], u.suffix) {
			text, factor = strings.TrimSpace(text[:len(text)-len(u.suffix)]), u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || math.IsNaN(n) || n*factor > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not a size; write it like 512MiB or 4GiB", s)
	}
	return Bytes(n * factor), nil
}

// String prints the largest binary unit that divides the size.
func (b Bytes) String() string {
	for i := 3; i >= 0; i-- {
		if f := Bytes(units[i].factor); b >= f && b%f == 0 {
			return strconv.FormatInt(int64(b/f), 10) + units[i].suffix
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
