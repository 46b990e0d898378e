// Package kuadrantpb has the messages and the service of kuadrant.proto. Its code is generated.
package kuadrantpb

//go:generate go test -run TestTheCodeIsThatOfTheProtoFile . -generate
