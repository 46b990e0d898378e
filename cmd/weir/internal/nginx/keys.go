package nginx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// key is the key of a zone, in attributes of rules.
type key struct {
	attributes []string
	text       string // with the names of servers; keys of different texts count apart
	header     string // the attribute that is the whole key: without it nginx does not count
}

// variables are those with a counterpart.
var variables = map[string]string{
	"binary_remote_addr": "client", "remote_addr": "client", "host": "host", "uri": "uri", "document_uri": "uri",
	"request_uri": "request_uri", "request_method": "method", "server_port": "port",
}

// attributeOf returns the attribute of a variable.
func attributeOf(name string) (attribute string, ok bool) {
	if header, ok := strings.CutPrefix(name, "http_"); ok && name != "http_host" {
		return "header." + strings.ReplaceAll(header, "_", "-"), true
	}
	attribute, ok = variables[name]
	return attribute, ok
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// only returns the name of the variable that is all of a text.
func only(text string) (name string, ok bool) {
	found := variable.FindStringSubmatch(text)
	if found == nil || found[0] != text {
		return "", false
	}
	return found[1] + found[2], true
}

// keyVariable is a variable in a key, with the text behind it.
type keyVariable struct{ name, text string }

// splitKey splits a key.
func splitKey(text string) (before string, all []keyVariable) {
	found := variable.FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		name, _ := only(text[at[0]:at[1]])
		all = append(all, keyVariable{name, text[at[1]:end]})
	}
	if len(found) == 0 {
		return text, nil
	}
	return text[:found[0][0]], all
}

// keyOf reads a key like $binary_remote_addr or $host$uri, in a server.
func keyOf(text, serverName string) (k key, err error) {
	before, all := splitKey(text)
	k.text = before
	for i, p := range all {
		if p.name == "server_name" {
			k.text += serverName + p.text
		} else {
			attribute, ok := attributeOf(p.name)
			if !ok {
				return k, fmt.Errorf("$%s is no attribute of requests", p.name)
			}
			if strings.HasPrefix(attribute, "header.") {
				if len(all) > 1 || before+p.text != "" {
					return k, fmt.Errorf("$%s, which may be empty, is a part of a key", p.name)
				}
				k.header = attribute
			}
			if k.text += "$" + attribute + p.text; !slices.Contains(k.attributes, attribute) {
				k.attributes = append(k.attributes, attribute)
			}
		}
		if i+1 < len(all) && !p.divided(all[i+1].name) {
			return k, fmt.Errorf("nginx does not mark where $%s ends and $%s begins", p.name, all[i+1].name)
		}
	}
	return k, nil
}

// divided reports whether different values of a variable and the next one always make different texts.
func (p keyVariable) divided(next string) bool {
	slash := strings.HasSuffix(next, "uri")
	begins := func(not string) bool {
		return p.text == "" && slash || p.text != "" && !strings.ContainsRune(not, rune(p.text[0]))
	}
	switch p.name {
	case "binary_remote_addr":
		return true
	case "server_name":
		return slash || next == "binary_remote_addr"
	case "host":
		return slash
	case "remote_addr":
		return begins("0123456789abcdef:.")
	case "request_method":
		return begins("ABCDEFGHIJKLMNOPQRSTUVWXYZ_-")
	case "server_port":
		return begins("0123456789")
	case "request_uri":
		return strings.HasPrefix(p.text, " ")
	}
	return false
}
