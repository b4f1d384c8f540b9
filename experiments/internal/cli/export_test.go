package cli

var Exit = exit
