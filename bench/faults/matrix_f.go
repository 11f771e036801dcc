package main

var fleetFaults = []Scenario{}
