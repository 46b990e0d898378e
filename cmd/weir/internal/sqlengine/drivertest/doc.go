// Package drivertest has the tests of package sqllimit. They need drivers, which the program has and the
// library has not. No program imports it.
package drivertest
