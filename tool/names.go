package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Namer makes names that every provider takes (see Verify) out of names that others gave: other characters become _, what is
// too long is cut and told apart by a part of its digest, as is what would be there twice. The same names in the same order
// give the same result. The zero value is ready; it is not safe for concurrent use.
type Namer struct {
	Prefix string
	taken  map[string]bool
}

// maxName is the longest name that every provider takes.
const maxName = 64

// Name makes the name of one tool.
func (n *Namer) Name(own string) string {
	name := n.Prefix + strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, own)
	if name == "" || name[0] == '-' || '0' <= name[0] && name[0] <= '9' {
		name = "_" + name
	}
	if len(name) > maxName || n.taken[name] {
		sum := sha256.Sum256([]byte(own))
		name = name[:min(len(name), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
	}
	if n.taken == nil {
		n.taken = map[string]bool{}
	}
	n.taken[name] = true
	return name
}
