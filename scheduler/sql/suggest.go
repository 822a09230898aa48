package sql

import "strings"

// Suggest returns the candidate that a misspelt name most likely means, or "".
func Suggest(name string, candidates []string) string { return nearest(name, candidates) }

func nearest(word string, candidates []string) string {
	const longest = 64
	if word == "" || len(word) > longest {
		return ""
	}
	best, bestDistance := "", 1+min(3, len([]rune(word))/3)
	for _, c := range candidates {
		if len(c) > 2*longest {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of edits between two words; swapping neighbours is one.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before []int
	prev := make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range x {
		cur := make([]int, len(y)+1)
		cur[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				cur[j+1] = min(cur[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(y)]
}
