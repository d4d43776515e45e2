package coach

import (
	"embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/ronda-go/ronda/model/scripted"
)

//go:embed scripts/*.yaml
var scriptFiles embed.FS

// ScriptInfo says what a script is about.
type ScriptInfo struct {
	Name     string   // coach-progress-en: what the scripted model is called
	Language string   // en, es
	About    string   // one line, in its language
	Say      []string // the messages of its conversation, in order
	file     string
}

// topics choose a script by the words of a message: the first topic and language that fit. The patterns see the message in lower
// case without accents. They also fit what is said later in the conversation of their script.
var topics = []struct {
	name   string
	en, es *regexp.Regexp
}{
	{"progress", regexp.MustCompile(`save that|injur`), regexp.MustCompile(`guarda(lo| eso)|lesion`)},
	{"refuse", regexp.MustCompile(`deadlift`), regexp.MustCompile(`peso muerto`)},
	{"limit", regexp.MustCompile(`squat|\bgo on\b|\bcontinue\b`), regexp.MustCompile(`sentadilla|\bsigue\b|\bcontinua\b|\badelante\b`)},
	{"log", regexp.MustCompile(`\blog\b|today's workout`), regexp.MustCompile(`\bregistra|entrenamiento de hoy`)},
	{"weigh", regexp.MustCompile(`\bweigh`), regexp.MustCompile(`mi peso\b|peso corporal`)},
	{"advice", regexp.MustCompile(`\brest\b`), regexp.MustCompile(`descans`)},
	{"goal", regexp.MustCompile(`\bgoal`), regexp.MustCompile(`\bobjetivo|\bmeta\b`)},
	{"progress", regexp.MustCompile(`progress|bench`), regexp.MustCompile(`progres[aeo]|banca`)},
}

var languages = []string{"en", "es"}

// Scripts lists the scripts, English and Spanish of a topic after each other.
func Scripts() []ScriptInfo {
	var list []ScriptInfo
	seen := map[string]bool{}
	for _, t := range topics {
		if seen[t.name] {
			continue
		}
		seen[t.name] = true
		for _, lang := range languages {
			if info, err := scriptInfo(t.name, lang); err == nil {
				list = append(list, info)
			}
		}
	}
	return list
}

// scriptInfo reads the comments at the head of a script.
func scriptInfo(topic, lang string) (ScriptInfo, error) {
	info := ScriptInfo{Name: "coach-" + topic + "-" + lang, Language: lang, file: "scripts/" + topic + "-" + lang + ".yaml"}
	b, err := scriptFiles.ReadFile(info.file)
	if err != nil {
		return info, err
	}
	for line := range strings.Lines(string(b)) {
		key, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "#")), ": ")
		switch {
		case !strings.HasPrefix(line, "#") || !ok:
			return info, nil
		case key == "about":
			info.About = value
		case key == "say":
			info.Say = append(info.Say, strings.Trim(value, `"`))
		}
	}
	return info, nil
}

// Script picks the script for a message by its words and its language. name is what to call the scripted model
// (scripted.Options.Name), so that whoever sees its answers sees that they were written beforehand. Where there is no script, the
// error lists what can be said.
//
// A session keeps the script of its first message: the model finds its place from the transcript. A later message of a script's own
// conversation ("yes, go on") picks the same script, so a caller that picks again for each message goes on with it too.
func Script(input string) (s *scripted.Script, name string, err error) {
	info, ok := scriptFor(input)
	if !ok {
		return nil, "", noScript()
	}
	b, err := scriptFiles.ReadFile(info.file)
	if err != nil {
		return nil, "", fmt.Errorf("coach: %w", err)
	}
	if s, err = scripted.ParseFile(info.file, b); err != nil {
		return nil, "", fmt.Errorf("coach: %w", err)
	}
	return s, info.Name, nil
}

func scriptFor(input string) (ScriptInfo, bool) {
	text := fold(input)
	for _, t := range topics {
		lang := ""
		switch {
		case t.es.MatchString(text):
			lang = "es"
		case t.en.MatchString(text):
			lang = "en"
		default:
			continue
		}
		info, err := scriptInfo(t.name, lang)
		return info, err == nil
	}
	return ScriptInfo{}, false
}

func noScript() error {
	var b strings.Builder
	b.WriteString("coach: no script answers this message. There are scripted answers to:")
	for _, info := range Scripts() {
		fmt.Fprintf(&b, "\n  %s", strings.Join(info.Say, " … "))
	}
	b.WriteString("\nSay one of them, or use a real model for anything else.")
	return fmt.Errorf("%s", b.String())
}
