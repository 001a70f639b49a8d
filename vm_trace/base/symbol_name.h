#ifndef RUBY_VM_TRACE_BASE_SYMBOL_NAME_H
#define RUBY_VM_TRACE_BASE_SYMBOL_NAME_H 1
/*
 * Names of functions, as dladdr(3) finds them, without the lock of the dynamic loader that it takes: that
 * is held while a library is opened and its constructors run, which may take seconds, and who waits for it
 * here has the GVL.
 */

/*
 * The name of the exported function at that address, which belongs to the shared object and lives as long.
 * NULL: it has none, as a static function, or the object has no table that says how many symbols it has.
 * Takes some 10 us for each thousand symbols, and for a moment a lock that no constructor holds. Any thread.
 */
const char *rb_vm_trace_symbol_name(const void *function);

#endif /* RUBY_VM_TRACE_BASE_SYMBOL_NAME_H */
