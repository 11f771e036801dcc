package main

var protocolFaults = []Scenario{}
