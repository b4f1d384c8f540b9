package cli

var Exit = exit

var SlurmCores = slurmCores
