package override

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"

	strictjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A file of overrides is a line and a JSON list of entries. The line has the CRC-32C of all that follows it:
//
//	weir overrides 1 crc32c 1c291ca3
//
// Versions of weir before it wrote the list alone. Such a list is read too, if weir can have written it, but then nothing tells
// a letter of a key that has changed.
const head = "weir overrides 1 crc32c "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func headOf(list []byte) string {
	return fmt.Sprintf("%s%08x\n", head, crc32.Checksum(list, castagnoli))
}

// writeEntries returns the content of a file.
func writeEntries(entries []Entry) ([]byte, error) {
	list, err := strictjson.Marshal(entries, jsontext.WithIndent(" "))
	if err != nil {
		return nil, err
	}
	list = append(list, '\n')
	return append([]byte(headOf(list)), list...), nil
}

// readEntries reads the content of a file. It is strict, since a block that is dropped admits, and one that is widened refuses
// everyone. sealed reports whether the file has a checksum.
func readEntries(content []byte) (entries []Entry, sealed bool, err error) {
	list := content
	if sealed = bytes.HasPrefix(content, []byte(head)); sealed {
		end := bytes.IndexByte(content, '\n') + 1
		if list = content[end:]; string(content[:end]) != headOf(list) {
			return nil, sealed, errors.New("its checksum does not fit: it is damaged, or was edited")
		}
	}
	var all []jsontext.Value
	if err := strictjson.Unmarshal(list, &all); err != nil {
		return nil, sealed, fmt.Errorf("it is not as weir writes it: %w", err)
	}
	known := map[target]bool{}
	for i, text := range all {
		e, err := readEntry(text)
		if err == nil && !sealed && e.Mode == Auto {
			_, err = e.asRule("rule")
		}
		if err == nil && known[e.target()] {
			err = errors.New("its rule and key have another entry before")
		}
		if err != nil {
			return nil, sealed, fmt.Errorf("entry %d is not as weir writes it: %w", i+1, err)
		}
		known[e.target()] = true
		entries = append(entries, e)
	}
	return entries, sealed, nil
}

// readEntry reads an entry that has each field it needs, and no field that this version does not know.
func readEntry(text jsontext.Value) (e Entry, err error) {
	var fields map[string]jsontext.Value
	if err := strictjson.Unmarshal(text, &fields); err != nil {
		return e, err
	}
	for name, value := range fields {
		if value.Kind() == 'n' {
			return e, fmt.Errorf("its field %q is null", name)
		}
	}
	for _, name := range []string{"key", "limit", "until"} {
		if fields[name] == nil {
			return e, fmt.Errorf("it has no field %q", name)
		}
	}
	if err := strictjson.Unmarshal(text, &e, strictjson.RejectUnknownMembers(true)); err != nil {
		return e, err
	}
	if e.Mode != Auto && (e.Rule == "" || e.Key != "" || e.Prefix || e.Limit != "" || e.Mode != Shadow && e.Mode != Enforced) {
		return e, errors.New("it is no mode of a rule")
	}
	if e.Key == "" && e.Prefix && e.Rule == "" {
		return e, errors.New("it is about every key of every rule")
	}
	return e, nil
}
