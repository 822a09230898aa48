// Package docs checks that what the documentation lists is what there is.
package docs
