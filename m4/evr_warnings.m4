# EVR_TRY_CFLAG(FLAG): append FLAG to EVR_CFLAGS when the compiler takes it.
AC_DEFUN([EVR_TRY_CFLAG], [
  AS_VAR_PUSHDEF([var], [evr_cv_cflag_$1])
  AC_CACHE_CHECK([whether $CC takes $1], [var], [
    evr_save=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM], [AS_VAR_SET([var], [yes])], [AS_VAR_SET([var], [no])])
    CFLAGS=$evr_save])
  AS_VAR_IF([var], [yes], [EVR_CFLAGS="$EVR_CFLAGS $1"])
  AS_VAR_POPDEF([var])])

# EVR_WARNINGS: the warnings every source is compiled with; reads enable_werror.
AC_DEFUN([EVR_WARNINGS], [
  EVR_CFLAGS=
  m4_foreach_w([flag], [-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wno-unused-parameter
    -Wno-missing-field-initializers -fno-strict-aliasing],
    [EVR_TRY_CFLAG(flag)])
  AS_IF([test "x$enable_werror" != xno], [EVR_CFLAGS="$EVR_CFLAGS -Werror"])
  AC_SUBST([EVR_CFLAGS])])
