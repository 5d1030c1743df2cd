# EVR_FUZZERS: reads enable_fuzzers; the whole tree is then compiled for libFuzzer to see into it,
# with the sanitizers that find what goes wrong. Before EVR_SANITIZERS.
AC_DEFUN([EVR_FUZZERS], [
  AS_IF([test "x$enable_fuzzers" != xno], [
    AS_CASE([$enable_sanitizers], [yes|no], [enable_sanitizers=address,undefined])
    enable_sanitizers=$enable_sanitizers,fuzzer-no-link
    evr_save=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=fuzzer"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
      #include <stddef.h>
      int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
      int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) { return !data && size; }
      ]])], [],
      [AC_MSG_ERROR([--enable-fuzzers takes libFuzzer, which $CC has not: configure with CC=clang])])
    CFLAGS=$evr_save])
  AM_CONDITIONAL([FUZZERS], [test "x$enable_fuzzers" != xno])])
