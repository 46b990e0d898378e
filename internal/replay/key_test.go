package replay

import (
	"testing"
)

func TestDifferentFieldsNeverMakeOneKey(t *testing.T) {
	seen := map[string]string{}
	values := []string{``, ` `, `x`, `x y`, `y`, `\"`, `\"\"`, `\\`, `x \"y\"`, `\"x`, `é`, `\n`, `\u007f`}
	for _, a := range values {
		for _, b := range values {
			line := `{"ts":1,"a":"` + a + `","b":"` + b + `"}`
			traffic := filledBy(t, mustKey(t, "a,b"), line)
			if len(traffic.keys) != 1 {
				t.Fatalf("line %s: got keys %q, reasons %v, want one key", line, traffic.keys, traffic.Reasons())
			}
			key := traffic.keys[0]
			if other, ok := seen[key]; ok {
				t.Errorf("lines %s and %s have the same key %s", line, other, key)
			}
			seen[key] = line
		}
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{nil, `replay: key: names no field`},
		{[]string{""}, `replay: key "": a field has no name`},
		{[]string{"ip,,path"}, `replay: key "ip,,path": a field has no name`},
		{[]string{"ip", "path, ip"}, `replay: key "path, ip": field ip occurs twice`},
		{[]string{"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"}, `replay: key: 17 fields, more than 16`},
	} {
		if key, err := ParseKey(c.texts...); err == nil || err.Error() != c.want {
			t.Errorf("ParseKey(%q): got %v, error %v, want %s", c.texts, key, err, c.want)
		}
	}
}

func TestKeyPrintsItsFields(t *testing.T) {
	if got := mustKey(t, "ip, path", "user").String(); got != "ip,path,user" {
		t.Errorf("got key %q, want %q", got, "ip,path,user")
	}
}
