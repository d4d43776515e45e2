package wire

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ronda-go/ronda/loop"
)

// Transient reports whether a status means that the same request may succeed later: request timeout, conflict (a lock on the
// provider's side), too early, too many requests, Groq's 498 (no capacity), and what the server blames on itself.
func Transient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests, 498:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// ClassOf is the class of an error status: transient or fatal.
func ClassOf(status int) loop.Class {
	if Transient(status) {
		return loop.ClassTransient
	}
	return loop.ClassFatal
}

// RetryAfter is how long the provider asks to wait: retry-after-ms, retry-after (seconds or a date), words in the message
// ("try again in 1m2.5s", "retry after 20 seconds"), else the headers that say when an exhausted allowance is full again.
// 0 where nothing says so.
func RetryAfter(h http.Header, message string, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms > 0 {
		return bounded(ms / 1000)
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if d, ok := seconds(v); ok {
			return d
		}
		if t, err := http.ParseTime(v); err == nil && t.After(now) {
			return bounded(t.Sub(now).Seconds())
		}
	}
	if d := WaitInText(message); d > 0 {
		return d
	}
	return resets(h, now)
}

// waitText knows how OpenAI, Groq ("try again in 7m12s"), Azure ("retry after 6 seconds") and Google ("retry in 34.07s")
// say it.
var waitText = regexp.MustCompile(`(?i)(?:try again|retry)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*(?:milliseconds?|minutes?|seconds?|hours?|ms|m|s|h)\s*)+)`)

var waitPart = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(milliseconds?|minutes?|seconds?|hours?|ms|m|s|h)`)

// WaitInText is the wait that a message asks for in words; 0 where it asks for none.
func WaitInText(message string) time.Duration {
	m := waitText.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	var sum float64
	for _, p := range waitPart.FindAllStringSubmatch(m[1], -1) {
		n, err := strconv.ParseFloat(p[1], 64)
		if err != nil {
			return 0
		}
		switch unit := strings.ToLower(p[2]); {
		case unit == "ms" || strings.HasPrefix(unit, "milli"):
			n /= 1000
		case strings.HasPrefix(unit, "m"):
			n *= 60
		case strings.HasPrefix(unit, "h"):
			n *= 3600
		}
		sum += n
	}
	return bounded(sum)
}

// resets reads x-ratelimit-reset-KIND beside x-ratelimit-remaining-KIND (OpenAI, Groq, Azure) and Anthropic's
// anthropic-ratelimit-KIND-reset: the latest of those that have nothing left.
func resets(h http.Header, now time.Time) (longest time.Duration) {
	for name, values := range h {
		name = strings.ToLower(name)
		var remaining string
		switch {
		case strings.HasPrefix(name, "x-ratelimit-reset"):
			remaining = h.Get("x-ratelimit-remaining" + name[len("x-ratelimit-reset"):])
		case strings.HasPrefix(name, "anthropic-ratelimit-") && strings.HasSuffix(name, "-reset"):
			remaining = h.Get(strings.TrimSuffix(name, "reset") + "remaining")
		default:
			continue
		}
		if n, err := strconv.ParseFloat(remaining, 64); err != nil || n > 0 {
			continue
		}
		if d := moment(values[0], now); d > longest {
			longest = d
		}
	}
	return longest
}

// moment reads a length of time (1m30s, 12ms, 3.5), a date or an epoch in seconds or milliseconds.
func moment(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		switch {
		case n > 1e12:
			n = n/1000 - float64(now.UnixMilli())/1000
		case n > 1e9:
			n -= float64(now.Unix())
		}
		return bounded(n)
	}
	if d, err := time.ParseDuration(v); err == nil {
		return bounded(d.Seconds())
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return bounded(t.Sub(now).Seconds())
	}
	return 0
}

func seconds(v string) (time.Duration, bool) {
	if n, err := strconv.ParseFloat(v, 64); err == nil {
		return bounded(n), true
	}
	if d, err := time.ParseDuration(v); err == nil { // some gateways send 1s
		return bounded(d.Seconds()), true
	}
	return 0, false
}

// bounded keeps nonsense (negative, not a number, centuries) out of the loop's arithmetic.
func bounded(sec float64) time.Duration {
	const most = 7 * 24 * 3600
	switch {
	case !(sec > 0):
		return 0
	case sec > most:
		sec = most
	}
	return time.Duration(sec*1e6) * time.Microsecond
}
