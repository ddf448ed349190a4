"""The decode step in C++: one call instead of a thousand (docs/adr/0009-native-decode-step.md)."""
