// The language of the reference pool's programs, whose sources a host build does not compile by themselves.
#include "script/parse.cc"
#include "script/pool_verbs.cc"
#include "script/world.cc"
