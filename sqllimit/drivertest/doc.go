// Package drivertest has the tests of package sqllimit. They need drivers, so they are a module of their own. No program
// imports it.
package drivertest
