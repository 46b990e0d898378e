package httplimit

import "sync"

// ForgetMadeInRequest lets the next middleware that is made within a request be
// told of again.
func ForgetMadeInRequest() { saidMade = sync.Once{} }
