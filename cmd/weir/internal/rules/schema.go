package rules

import (
	"encoding/json"
	"strings"
)

// shape is the JSON Schema of a value.
type shape map[string]any

// The shapes of values. A text may also be written as a number or a truth value, as YAML reads those without quotes.
var (
	texts   = shape{"type": []string{"string", "number", "boolean"}}
	flags   = shape{"type": "boolean"}
	matches = either(words("any", "otherwise"), mapOf(listOf(texts)))
)

func words(all ...string) shape { return shape{"enum": all} }

func wholes(least, most int64) shape {
	return shape{"type": "integer", "minimum": least, "maximum": most}
}

func namesOf(most int) shape {
	return shape{"type": []string{"string", "number", "boolean"}, "maxLength": most, "pattern": namePattern}
}

func itemsOf(s shape) shape { return shape{"type": "array", "items": s} }

// listOf is one value or a list of values.
func listOf(s shape) shape {
	return either(s, shape{"type": "array", "items": s, "minItems": 1})
}

func mapOf(s shape) shape {
	return shape{"type": "object", "minProperties": 1, "additionalProperties": s}
}

func either(shapes ...shape) shape { return shape{"anyOf": shapes} }

// object is the shape of a mapping. It takes the table by its address, because tables refer to one another.
func object[T any](table *fields[T], required ...string) shape {
	return shape{"of": func() shape {
		properties := shape{}
		for _, f := range *table {
			properties[f.name] = described(f.shape, f.about)
		}
		s := shape{"type": "object", "additionalProperties": false, "properties": properties}
		if len(required) > 0 {
			s["required"] = required
		}
		return s
	}}
}

// expanded returns the shape with the tables that it refers to.
func (s shape) expanded() shape {
	if table, ok := s["of"].(func() shape); ok {
		s = table()
	}
	out := make(shape, len(s))
	for name, v := range s {
		switch v := v.(type) {
		case shape:
			out[name] = v.expanded()
		case []shape:
			all := make([]shape, len(v))
			for i := range v {
				all[i] = v[i].expanded()
			}
			out[name] = all
		default:
			out[name] = v
		}
	}
	return out
}

func described(s shape, about string) shape {
	out := shape{}
	for name, v := range s.expanded() {
		out[name] = v
	}
	out["description"] = about
	return out
}

// Schema returns the JSON Schema of rules files.
func Schema() []byte {
	s := described(object(&fileFields), "Rules of Weir: docs/reference/rules.md describes them.")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Rules of Weir"
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(s) // maps, slices and texts
	return []byte(b.String())
}
