require "mkmf"
create_makefile("gvl_json")
