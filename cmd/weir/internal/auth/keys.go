package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The forms of a credential: the hash of a bearer token, or a name in a certificate.
const hashForm = "sha256:"

var nameForms = []string{"uri:", "dns:", "email:", "cn:"}

// identities tell callers apart. They do not change.
type identities struct {
	tokens map[[8]byte]hashed // by the first bytes of the hash
	named  map[string]*Identity
}

// hashed is a token as the file has it. A token has too many bits to be found from its hash.
type hashed struct {
	sum [sha256.Size]byte
	of  *Identity
}

// NewToken returns a token that nobody can guess, and its form in a file.
func NewToken() (token, form string) {
	token = "weir_" + rand.Text()
	sum := sha256.Sum256([]byte(token))
	return token, hashForm + hex.EncodeToString(sum[:])
}

// maxIdentities bounds the lines of a file.
const maxIdentities = 10_000

// Parse reads a file of tokens. It returns its identities, in no order.
func Parse(text string) (list []*Identity, err error) {
	all, err := parseIdentities(text)
	if err != nil {
		return nil, err
	}
	for _, token := range all.tokens {
		list = append(list, token.of)
	}
	return slices.AppendSeq(list, maps.Values(all.named)), nil
}

// parseIdentities reads lines of a name, what the caller shows, and scopes. Errors do not quote what might be a token.
func parseIdentities(text string) (*identities, error) {
	all := &identities{tokens: map[[8]byte]hashed{}, named: map[string]*Identity{}}
	for number, line := range slices.All(strings.Split(text, "\n")) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := all.add(fields); err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
	}
	if n := len(all.tokens) + len(all.named); n == 0 || n > maxIdentities {
		return nil, fmt.Errorf("it has %d identities, want 1 to %d", n, maxIdentities)
	}
	return all, nil
}

func (all *identities) add(fields []string) error {
	if len(fields) < 3 {
		return fmt.Errorf("it has %d fields, want a name, sha256:HASH or the name in a certificate, and scopes", len(fields))
	}
	who := &Identity{Name: fields[0]}
	for _, text := range fields[2:] {
		name, rule, limited := strings.Cut(text, ":")
		scope, err := parseScope(name)
		if err != nil {
			return err
		}
		if limited && rule == "" {
			return fmt.Errorf("%q names no rule", text)
		}
		who.grant(scope, rule)
	}
	shown := fields[1]
	if digits, ok := strings.CutPrefix(shown, hashForm); ok {
		return all.addToken(digits, who)
	}
	form := slices.IndexFunc(nameForms, func(form string) bool { return strings.HasPrefix(shown, form) && shown != form })
	switch {
	case form < 0:
		return fmt.Errorf("the second field is none of sha256:HASH, %sNAME", strings.Join(nameForms, "NAME, "))
	case all.named[shown] != nil:
		return fmt.Errorf("%s is given twice", shown)
	}
	all.named[shown] = who
	return nil
}

func (all *identities) addToken(digits string, who *Identity) error {
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("the hash is not %d hexadecimal digits; weir token new prints one", 2*sha256.Size)
	}
	at := [8]byte(sum)
	if _, twice := all.tokens[at]; twice {
		return fmt.Errorf("the token of %q is given twice", who.Name)
	}
	all.tokens[at] = hashed{[sha256.Size]byte(sum), who}
	return nil
}

// withToken returns who shows a token, or nil. Its time depends on the hash alone, which does not reveal the token.
func (all *identities) withToken(token string) *Identity {
	sum := sha256.Sum256([]byte(token))
	found, ok := all.tokens[[8]byte(sum[:])]
	if !ok || subtle.ConstantTimeCompare(sum[:], found.sum[:]) != 1 {
		return nil
	}
	return found.of
}

// withCertificate returns who shows a certificate, or nil.
func (all *identities) withCertificate(leaf *x509.Certificate) *Identity {
	for _, name := range namesOf(leaf) {
		if who := all.named[name]; who != nil {
			return who
		}
	}
	return nil
}

// namesOf returns the names in a certificate as files have them.
func namesOf(leaf *x509.Certificate) (names []string) {
	for _, uri := range leaf.URIs {
		names = append(names, nameForms[0]+uri.String())
	}
	for _, name := range leaf.DNSNames {
		names = append(names, nameForms[1]+name)
	}
	for _, address := range leaf.EmailAddresses {
		names = append(names, nameForms[2]+address)
	}
	return append(names, nameForms[3]+leaf.Subject.CommonName)
}

// verified returns the certificate that the caller has proved to own, or nil. A connection may outlive a certificate.
func verified(state *tls.ConnectionState) *x509.Certificate {
	if state == nil || len(state.VerifiedChains) == 0 || time.Now().After(state.PeerCertificates[0].NotAfter) {
		return nil
	}
	return state.PeerCertificates[0]
}
