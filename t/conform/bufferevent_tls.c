/* TLS over RDMA: libevent's filter of OpenSSL's upon the two bufferevents. */
#include "conform/bufferevent_tls.h"

#include "conform/stream.h"
#include "conform/suite.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

static struct side *const client = &bevs.client, *const server = &bevs.server;
static SSL_CTX *context;

/* --- a key and its certificate, in memory ---------------------------------------------------- */

static EVP_PKEY *make_key(void)
{
	EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
	EVP_PKEY *key = NULL;

	ck_assert_int_eq(EVP_PKEY_keygen_init(maker), 1);
	ck_assert_int_eq(
		EVP_PKEY_CTX_set_ec_paramgen_curve_nid(maker, NID_X9_62_prime256v1), 1);
	ck_assert_int_eq(EVP_PKEY_keygen(maker, &key), 1);
	EVP_PKEY_CTX_free(maker);
	return key;
}

static X509 *sign(EVP_PKEY *key)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_NAME_add_entry_by_txt(
		name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(cert, name);
	X509_set_pubkey(cert, key);
	ck_assert_int_gt(X509_sign(cert, key, EVP_sha256()), 0);
	return cert;
}

/* The client trusts that certificate, and no other. */
void tls_start(void)
{
	EVP_PKEY *key = make_key();
	X509 *cert = sign(key);

	context = SSL_CTX_new(TLS_method());
	ck_assert_int_eq(SSL_CTX_use_certificate(context, cert), 1);
	ck_assert_int_eq(SSL_CTX_use_PrivateKey(context, key), 1);
	ck_assert_int_eq(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), cert), 1);
	X509_free(cert);
	EVP_PKEY_free(key);
}

void tls_stop(void)
{
	SSL_CTX_free(context);
}

/* --- the two -------------------------------------------------------------------------------- */

struct bufferevent *tls_upon(
	struct bufferevent *bev, enum bufferevent_ssl_state state, int options)
{
	SSL *ssl = SSL_new(context);

	if (state == BUFFEREVENT_SSL_CONNECTING)
		SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	return bufferevent_openssl_filter_new(
		bevs.f->loop, bev, ssl, state, BEV_OPT_CLOSE_ON_FREE | options);
}

/* The side is the filter from now on. */
static void put_tls_on(struct side *side, enum bufferevent_ssl_state state, int options)
{
	side->connected = 0;
	side_begin(side, tls_upon(side->bev, state, options));
}

static bool tls_is_up(struct fixture *f)
{
	return client->connected && server->connected;
}

static void connect_through_tls(int options)
{
	bevs_start();
	put_tls_on(server, BUFFEREVENT_SSL_ACCEPTING, options);
	put_tls_on(client, BUFFEREVENT_SSL_CONNECTING, options);
	bevs_run_until(tls_is_up);
}

static const struct {
	size_t len;
	int options;
} echoes[] = {
	{ 1, 0 },
	{ 1000, 0 },
	{ 131073, 0 },
	{ MILLION + 7, 0 },
	{ 131073, BEV_OPT_DEFER_CALLBACKS },
};

START_TEST(what_is_written_through_TLS_comes_back)
{
	client->on_read = side_check;
	server->on_read = side_echo;
	connect_through_tls(echoes[_i].options);
	ck_assert_str_eq(SSL_get_version(bufferevent_openssl_get_ssl(client->bev)), "TLSv1.3");
	side_write(client, echoes[_i].len);
	side_await(client, echoes[_i].len);
	ck_assert_uint_eq(client->errors + server->errors + client->eof + server->eof, 0);
}
END_TEST

static bool server_is_there(struct fixture *f)
{
	return server->bev;
}

START_TEST(the_handshake_may_be_begun_before_CONNECTED)
{
	server->on_read = side_check;
	bevs_listen();
	bevs_connect();
	put_tls_on(client, BUFFEREVENT_SSL_CONNECTING, 0);
	side_write(client, 5000);
	bevs_run_until(server_is_there);
	put_tls_on(server, BUFFEREVENT_SSL_ACCEPTING, 0);
	bevs_run_until(tls_is_up);
	side_await(server, 5000);
}
END_TEST

/* --- ends ----------------------------------------------------------------------------------- */

static void say_goodbye(struct side *side)
{
	SSL *ssl = bufferevent_openssl_get_ssl(side->bev);

	SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
	SSL_shutdown(ssl);
	side_free(side);
}

static bool client_has_nothing_left(struct fixture *f)
{
	return !side_output(client);
}

START_TEST(a_side_that_says_goodbye_is_an_end_after_what_it_wrote)
{
	server->on_read = side_check;
	connect_through_tls(0);
	side_write(client, 100000);
	bevs_run_until(client_has_nothing_left);
	say_goodbye(client);
	bevs_run_until(server_has_eof);
	ck_assert_uint_eq(server->checked, 100000);
	ck_assert_uint_eq(server->errors, 0);
	ck_assert_uint_eq(bufferevent_get_openssl_error(server->bev), 0);
}
END_TEST

static bool server_has_an_end(struct fixture *f)
{
	return server->eof || server->errors;
}

/* Which may be an attack: it is an error, where the program has not said that it is not. */
START_TEST(a_side_that_leaves_without_goodbye_is_an_error)
{
	connect_through_tls(0);
	bufferevent_openssl_set_allow_dirty_shutdown(server->bev, _i);
	side_free(client);
	bevs_run_until(server_has_an_end);
	ck_assert_uint_eq(server->eof, _i);
	ck_assert_uint_eq(server->errors, !_i);
}
END_TEST

START_TEST(a_side_that_leaves_within_the_handshake_is_an_error)
{
	bevs_start();
	put_tls_on(client, BUFFEREVENT_SSL_CONNECTING, 0);
	put_tls_on(server, BUFFEREVENT_SSL_ACCEPTING, 0);
	fixture_run_turns(bevs.f, _i);
	ck_assert_uint_eq(server->connected, 0);
	side_free(client);
	bevs_run_until(server_has_an_end);
}
END_TEST

START_TEST(a_side_that_speaks_no_TLS_is_an_error)
{
	bevs_start();
	put_tls_on(server, BUFFEREVENT_SSL_ACCEPTING, 0);
	bufferevent_write(client->bev, "GET / HTTP/1.0\r\n\r\n", 18);
	bevs_run_until(server_has_error);
	ck_assert_uint_ne(bufferevent_get_openssl_error(server->bev), 0);
}
END_TEST

TCase *bufferevent_tls_case(void)
{
	TCase *tcase = tcase_create("bufferevent_tls");
	int n = sizeof(echoes) / sizeof(echoes[0]);

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, testbed.start, testbed.stop);
	bevs_add_fixture(tcase);
	tcase_add_checked_fixture(tcase, tls_start, tls_stop);
	tcase_add_loop_test(tcase, what_is_written_through_TLS_comes_back, 0, n);
	tcase_add_test(tcase, the_handshake_may_be_begun_before_CONNECTED);
	tcase_add_test(tcase, a_side_that_says_goodbye_is_an_end_after_what_it_wrote);
	tcase_add_loop_test(tcase, a_side_that_leaves_without_goodbye_is_an_error, 0, 2);
	tcase_add_loop_test(tcase, a_side_that_leaves_within_the_handshake_is_an_error, 0, 2);
	tcase_add_test(tcase, a_side_that_speaks_no_TLS_is_an_error);
	return tcase;
}
