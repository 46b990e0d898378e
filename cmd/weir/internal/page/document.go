package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
)

// Document is a page in one file, which works from a mail: it asks no network, and runs and shows only what is written
// into it.
type Document struct {
	Title  string
	Body   string // HTML, without the tags of the body
	Data   any    // becomes JSON, which the script finds by document.getElementById('data').textContent
	Script string // runs after Script()
}

// Bytes returns the file.
func (d Document) Bytes() ([]byte, error) {
	data, err := json.Marshal(d.Data) // escapes <, >, & and the line ends of scripts
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	script, css := "\n"+Script()+"\n"+d.Script, "\n"+Style()
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>%s</style>
</head>
<body>
%s
<script type="application/json" id="data">%s</script>
<script>%s</script>
</body>
</html>
`, hashOf(script), hashOf(css), html.EscapeString(d.Title), css, d.Body, data, script)
	return b.Bytes(), nil
}

// hashOf returns what a content security policy calls a script or a style by.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
