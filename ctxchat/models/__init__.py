"""Models behind one port: providers reached over the network, the built-in assistant, and a scripted one."""
