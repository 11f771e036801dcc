package main

var gatewayFaults = []Scenario{}
