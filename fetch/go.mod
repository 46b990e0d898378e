module github.com/weirflow/weir/fetch

go 1.26.0

replace github.com/weirflow/weir => ../

require (
	github.com/weirflow/weir v0.0.0
	golang.org/x/net v0.60.0
)

require golang.org/x/text v0.42.0 // indirect
