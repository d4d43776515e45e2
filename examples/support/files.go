package support

import (
	"fmt"
	"strings"
)

// PolicyFiles are the policies as Markdown files, by name (RET.md), each with all versions in both languages, for a variant
// that reads them from a file server. INDEX.md lists them.
func PolicyFiles() (map[string]string, error) {
	d, err := loadData()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	var index strings.Builder
	index.WriteString("# Policies\n\nOne file each. The version that was in force on the day on which a case was opened applies.\n\n| file | topic | title | also asked as |\n| --- | --- | --- | --- |\n")
	for _, p := range d.Policies {
		fmt.Fprintf(&index, "| %s.md | %s | %s / %s | %s |\n", p.ID, p.Topic, p.Title["en"], p.Title["es"], strings.Join(p.Words, ", "))
		var b strings.Builder
		fmt.Fprintf(&b, "# %s: %s / %s\n", p.ID, p.Title["en"], p.Title["es"])
		for _, v := range p.Versions {
			until := "still in force"
			if v.To != "" {
				until = "in force until " + v.To
			}
			fmt.Fprintf(&b, "\n## %s (policy_id %s, policy_version %d): in force from %s, %s\n\n%s\n\n%s\n",
				PolicyRef(p.ID, v.Version), p.ID, v.Version, v.From, until, strings.TrimSpace(v.EN), strings.TrimSpace(v.ES))
		}
		files[p.ID+".md"] = b.String()
	}
	files["INDEX.md"] = index.String()
	return files, nil
}
