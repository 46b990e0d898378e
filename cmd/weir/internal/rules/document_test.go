package rules

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const documents = "../../../../docs/reference/"

func page(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(documents + "rules.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The examples of the document are a file, a complete file, one with ports, one with costs known afterwards, and tests of the second.
func TestTheExamplesOfTheDocumentWork(t *testing.T) {
	text := page(t)
	blocks := yamlBlock.FindAllStringSubmatch(text, -1)
	if len(blocks) != 5 {
		t.Fatalf("%d examples, want 5", len(blocks))
	}
	parsed(t, blocks[0][1])
	parsed(t, blocks[2][1])
	parsed(t, blocks[3][1])
	results, err := Test(File{"weir.test.yaml", []byte(blocks[4][1])}, func([]string) (*Config, error) { return parsed(t, blocks[1][1]), nil })
	if err != nil || len(results) != 1 || results[0].Failure != "" {
		t.Errorf("the tests of the document: %+v, %v", results, err)
	}
	_, err = Parse(Options{}, File{"weir.yaml", []byte(strings.Replace(blocks[0][1], "5/m and fixed window 100/d", "tokn bucket 5/m", 1))})
	if err == nil || !strings.Contains(text, err.Error()) {
		t.Errorf("the document does not show this error:\n%v", err)
	}
}

func TestTheDocumentNamesEveryField(t *testing.T) {
	text := page(t)
	for _, names := range [][]string{fileFields.names(), listenFields.names(), tlsFields.names(), ruleFields.names(), planFields.names(), costFields.names(), chargeFields.names(), estimateFields.names(), stepFields.names()} {
		for _, name := range names {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/reference/rules.md does not name the field `%s`", name)
			}
		}
	}
}

// docs/reference/rules.schema.json is what weir rules schema prints. With -update the test writes it.
func TestTheSchemaIsUpToDate(t *testing.T) {
	const file = documents + "rules.schema.json"
	if *update {
		if err := os.WriteFile(file, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(written, Schema()) {
		t.Errorf("%s differs from the fields of the parser (%v); go test ./internal/rules -run Schema -update writes it", file, err)
	}
}

// The schema accepts what the parser accepts, and refuses the faults of structure that it can know of.
func TestTheSchemaAgreesWithTheParser(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	read, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err == nil {
		err = compiler.AddResource("rules.json", read)
	}
	if err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("rules.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return err
		}
		content, err := json.Marshal(value)
		if err != nil {
			return err
		}
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err != nil {
			return err
		}
		return schema.Validate(parsed)
	}
	for _, block := range yamlBlock.FindAllStringSubmatch(page(t), -1)[:2] {
		if err := validate(block[1]); err != nil {
			t.Errorf("the schema refuses an example: %v\n%s", err, block[1])
		}
	}
	if err := validate(waterfall); err != nil {
		t.Errorf("the schema refuses pools: %v", err)
	}
	known := []string{"unknown top field", "rules is a mapping", "rules is a text", "unknown field of a rule", "misspelt field", "no name", "name with a space",
		"deny is no flag", "match is another word", "match is empty", "misspelt missing", "negative cost", "misspelt on_failure", "misspelt default", "limit is a mapping"}
	content, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, c := range strings.Split(string(content), "=== ")[1:] {
		name, rest, _ := strings.Cut(c, "\n")
		text, _, _ := strings.Cut(rest, "--- errors\n")
		if slices.Contains(known, name) {
			refused++
			if validate(text) == nil {
				t.Errorf("%s: the schema accepts\n%s", name, text)
			}
		}
	}
	if refused != len(known) {
		t.Errorf("%d of %d faults were tried", refused, len(known))
	}
}
