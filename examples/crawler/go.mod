module github.com/weirflow/weir/examples/crawler

go 1.26.0

replace github.com/weirflow/weir => ../..

replace github.com/weirflow/weir/fetch => ../../fetch

require (
	github.com/weirflow/weir v0.0.0
	github.com/weirflow/weir/fetch v0.0.0
)

require (
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
