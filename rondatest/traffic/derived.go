package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckText compares a text with the derived one, by its digest where it is too long to be repeated; "" where they agree.
func (d *Derived) CheckText(got string) string {
	if d.TextSHA256 == "" {
		if got != d.Text {
			return fmt.Sprintf("text %.300q, want %.300q", got, d.Text)
		}
		return ""
	}
	sum := sha256.Sum256([]byte(got))
	if hex.EncodeToString(sum[:]) != d.TextSHA256 && !strings.HasPrefix(hex.EncodeToString(sum[:]), d.TextSHA256) {
		return fmt.Sprintf("text of %d characters has another digest than the derived one of %d", utf8.RuneCountInString(got), d.TextChars)
	}
	return ""
}
