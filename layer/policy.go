package layer

// Policy is how a Guard answers while its engine is away. A call of several rules follows the least of their policies.
type Policy uint8

const (
	// Deny returns an *OutageError, which is a 503 of package httplimit and UNAVAILABLE of package grpclimit.
	Deny Policy = iota
	// Local decides in process, by the limits of one of GuardOptions.Peers.
	Local
	// Allow admits everything.
	Allow
)

var policyNames = [...]string{"deny", "local", "allow"}

// String returns deny, local or allow.
func (p Policy) String() string { return policyNames[min(int(p), len(policyNames)-1)] }

// UnmarshalText reads deny, local or allow.
func (p *Policy) UnmarshalText(text []byte) error {
	for i, name := range policyNames {
		if name == string(text) {
			*p = Policy(i)
			return nil
		}
	}
	return optionError(guards, "policy", "%q is not deny, local or allow", text)
}
