package kuadrantpb

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

var generate = flag.Bool("generate", false, "write the code of kuadrant.proto")

const (
	source = "kuadrant.proto"
	// path is the name of the file for reflection.
	path = "kuadrant/service/ratelimit/v1/kuadrant.proto"
)

// generators run by version; that of messages has the version of the library.
var generators = []string{"google.golang.org/protobuf/cmd/protoc-gen-go", "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2"}

// compiled returns the description of kuadrant.proto. Its imports are those of the linked packages.
func compiled(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	c := protocompile.Compiler{SourceInfoMode: protocompile.SourceInfoStandard, Resolver: protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
		if name == path {
			return protocompile.SearchResult{Source: bytes.NewReader(text)}, nil
		}
		file, err := protoregistry.GlobalFiles.FindFileByPath(name)
		return protocompile.SearchResult{Desc: file}, err
	})}
	files, err := c.Compile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

func TestTheCodeIsThatOfTheProtoFile(t *testing.T) {
	file := compiled(t)
	if *generate {
		write(t, file)
		return
	}
	made, err := protoregistry.GlobalFiles.FindFileByPath(path)
	if err != nil {
		t.Fatalf("%v; go generate ./cmd/weir/internal/kuadrantpb writes the code", err)
	}
	want, got := protodesc.ToFileDescriptorProto(file), protodesc.ToFileDescriptorProto(made)
	want.SourceCodeInfo = nil
	if !proto.Equal(got, want) {
		t.Errorf("the code describes\n%v\nand %s\n%v\ngo generate ./cmd/weir/internal/kuadrantpb writes the code", got, source, want)
	}
	methods, service := file.Services().Get(0).Methods(), RateLimitService_ServiceDesc
	if service.ServiceName != string(file.Services().Get(0).FullName()) || len(service.Methods) != methods.Len() {
		t.Fatalf("the service is %s with %d methods, want those of %s", service.ServiceName, len(service.Methods), source)
	}
	for i, m := range service.Methods {
		if want := string(methods.Get(i).Name()); m.MethodName != want {
			t.Errorf("method %d is %s, want %s", i, m.MethodName, want)
		}
	}
}

// write runs the generators.
func write(t *testing.T, file protoreflect.FileDescriptor) {
	t.Helper()
	asked := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{path}, Parameter: proto.String("paths=source_relative"), ProtoFile: withImports(file, map[string]bool{})}
	text, err := proto.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range generators {
		cmd := exec.CommandContext(t.Context(), "go", "run", program)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(text), os.Stderr
		out, err := cmd.Output()
		var answer pluginpb.CodeGeneratorResponse
		if err == nil {
			err = proto.Unmarshal(out, &answer)
		}
		if err != nil || answer.Error != nil {
			t.Fatalf("%s: %v %s", program, err, answer.GetError())
		}
		for _, made := range answer.File {
			// It asks for the version of protoc, and there is none.
			content := strings.Replace(made.GetContent(), "(unknown)", "bufbuild/protocompile", 1)
			if err := os.WriteFile(filepath.Base(made.GetName()), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// withImports lists a file after those that it imports.
func withImports(file protoreflect.FileDescriptor, listed map[string]bool) (files []*descriptorpb.FileDescriptorProto) {
	if listed[file.Path()] {
		return nil
	}
	listed[file.Path()] = true
	for i := range file.Imports().Len() {
		files = append(files, withImports(file.Imports().Get(i).FileDescriptor, listed)...)
	}
	return append(files, protodesc.ToFileDescriptorProto(file))
}
