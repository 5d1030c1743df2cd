# EVR_SANITIZERS(LIST): compile and link everything with -fsanitize=LIST; unless the user has set CFLAGS,
# so that it is built in half the time of -O2 -g.
AC_DEFUN([EVR_SANITIZERS], [
  EVR_SAN_FLAGS=
  AS_CASE([$1],
    [no], [],
    [yes], [enable_sanitizers=address,undefined])
  AS_IF([test "x$enable_sanitizers" != xno], [
    EVR_SAN_FLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
    AS_IF([test -z "$evr_users_cflags"], [CFLAGS="-O1 -g1"])
    evr_save=$CFLAGS
    CFLAGS="$CFLAGS $EVR_SAN_FLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [],
      [AC_MSG_ERROR([$CC cannot link with -fsanitize=$enable_sanitizers])])
    CFLAGS=$evr_save])
  AM_CONDITIONAL([SANITIZERS], [test "x$enable_sanitizers" != xno])
  AC_SUBST([EVR_SAN_FLAGS])])
